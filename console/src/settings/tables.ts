import type { Group } from "./form";

const IMPORTANCE = [
  { value: "low", label: "Low: nearly everything" },
  { value: "medium", label: "Medium" },
  { value: "high", label: "High: only what matters most" },
] as const;
const INHERITED = "Empty: as the platform has it.";

export const SITE: readonly Group[] = [
  {
    title: "Background extraction",
    fields: [
      { kind: "switch", path: "settings.memory_async_extraction_enabled", label: "Learn in the background" },
      { kind: "text", path: "settings.memory_extraction_model_id", label: "Model", max: 255, hint: "Empty: the deployment's own model." },
      {
        kind: "number",
        path: "settings.memory_extraction_cooldown_seconds",
        label: "Cooldown (seconds)",
        min: 10,
        max: 3600,
        hint: "How long a conversation rests before it is read: 10 to 3600.",
      },
      {
        kind: "number",
        path: "settings.memory_extraction_max_pending_turns",
        label: "Pending turns",
        min: 1,
        max: 50,
        hint: "So many waiting turns are read at once, without a rest: 1 to 50.",
      },
    ],
  },
];

export const TENANT: readonly Group[] = [
  {
    title: "What is remembered",
    fields: [
      {
        kind: "choice",
        path: "mode",
        label: "Memory",
        options: [
          { value: "disabled", label: "Disabled" },
          { value: "durable", label: "Durable: across conversations" },
        ],
      },
      {
        kind: "choice",
        path: "retention",
        label: "Retention",
        options: [
          { value: "none", label: "None: recall only" },
          { value: "explicit_only", label: "Explicit only: what people ask to remember" },
          { value: "automatic", label: "Automatic: what conversations tell" },
        ],
      },
      {
        kind: "choice",
        path: "secrets",
        label: "Credentials in what is said",
        options: [
          { value: "redact", label: "Redact" },
          { value: "refuse", label: "Refuse" },
        ],
      },
    ],
  },
  {
    title: "Recall",
    fields: [
      {
        kind: "number",
        path: "half_life_days",
        label: "Half-life (days)",
        min: 0,
        max: 36_500,
        step: 0.5,
        hint: "After so long untouched, recency counts half.",
      },
      {
        kind: "number",
        path: "recency_weight",
        label: "Weight of recency",
        min: 0,
        max: 1,
        step: 0.05,
        hint: "0 to 1: the share of recency in the score.",
      },
      {
        kind: "number",
        path: "time_window_days",
        label: "Time window (days)",
        min: 1,
        max: 36_500,
        nullable: true,
        hint: "Empty: no limit.",
      },
      {
        kind: "number",
        path: "context_tokens",
        label: "Tokens in a prompt",
        min: 0,
        max: 100_000,
        hint: "The budget of recalled memory in one turn.",
      },
    ],
  },
  {
    title: "Background extraction",
    fields: [
      { kind: "switch", path: "extraction.async_enabled", label: "Learn in the background" },
      { kind: "text", path: "extraction.model_id", label: "Model", max: 255, hint: "Empty: the deployment's own model." },
      {
        kind: "number",
        path: "extraction.cooldown_seconds",
        label: "Cooldown (seconds)",
        min: 10,
        max: 3600,
        nullable: true,
        hint: INHERITED,
      },
      { kind: "number", path: "extraction.max_pending_turns", label: "Pending turns", min: 1, max: 50, nullable: true, hint: INHERITED },
      { kind: "choice", path: "extraction.importance_threshold", label: "Importance", options: IMPORTANCE },
    ],
  },
];

export const AGENT: readonly Group[] = [
  {
    title: "Memory",
    fields: [
      { kind: "switch", path: "enable_memory", label: "Enable memory", hint: "The agent recalls and, where the tenant allows it, learns." },
      {
        kind: "number",
        path: "memory_config.max_memories_per_retrieval",
        label: "Memories per retrieval",
        min: 1,
        max: 50,
        hint: "1 to 50.",
      },
      { kind: "switch", path: "memory_config.auto_extract", label: "Learn from its conversations" },
      {
        kind: "choice",
        path: "memory_config.importance_threshold",
        label: "Importance",
        options: IMPORTANCE,
        hint: "The stricter of this and the tenant's holds.",
      },
    ],
  },
];
