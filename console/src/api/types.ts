/** The parts of the API's resources that the console reads; the OpenAPI file has them whole. */

export const ENTITY_TYPES = [
  "person",
  "preference",
  "skill",
  "project",
  "goal",
  "fact",
  "concept",
  "organization",
  "location",
  "custom",
] as const;
export type EntityType = (typeof ENTITY_TYPES)[number];

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Provenance {
  conversation_id: string | null;
  message_id: string | null;
  speaker: string | null;
  quote: string | null;
  trust: "user" | "explicit" | "assistant" | "import" | "api";
  recorded_at: string;
}

export interface Entity {
  id: string;
  name: string;
  entity_type: EntityType;
  description: string;
  properties: JsonObject;
  aliases: string[];
  scope: { kind: "tenant" | "subject" | "knowledge_base"; external_subject_id: string | null; knowledge_base_id: string | null };
  subject: { kind: "user" | "entity"; entity_id: string | null; name: string | null } | null;
  polarity: "positive" | "negative";
  provenance: Provenance[];
  valid_from: string | null;
  valid_to: string | null;
  expires_at: string | null;
  access_count: number;
  last_accessed_at: string | null;
  version: number;
  created_at: string;
  updated_at: string;
}

export interface Relation {
  id: string;
  source_entity_id: string;
  target_entity_id: string;
  relation_type: string;
  description: string;
  valid_from: string | null;
  valid_to: string | null;
}

export interface EntityView {
  entity: Entity;
  outgoing_relations: Relation[];
  incoming_relations: Relation[];
}

export interface EntityList {
  items: Entity[];
  total: number;
  page: number;
  page_size: number;
}

export interface Graph {
  entities: Entity[];
  relations: Relation[];
  truncated: boolean;
}

export interface SearchItem {
  entity: Entity;
  score: number;
  similarity: number;
  lexical: number;
  recency: number;
  matched_by: string[];
}

export interface SearchAnswer {
  items: SearchItem[];
  subgraph: Graph;
  abstained: boolean;
  time_filter: { from: string | null; to: string | null; phrase: string } | null;
}

export interface HistoryEntry {
  version: number;
  action: "created" | "merged" | "updated" | "superseded" | "restored" | "deleted";
  actor: { kind: string; id: string };
  changes: { field: string; old: Json; new: Json }[];
  source_message_id: string | null;
  at: string;
}

export interface BatchDeleted {
  deleted: number;
  relations_deleted: number;
  not_found: string[];
}

export interface Forgotten {
  dry_run: boolean;
  candidates: Entity[];
  deleted: number;
}

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export interface Tenant {
  id: string;
  name: string;
  state: string;
}

export interface Agent {
  id: string;
  name: string;
  is_default: boolean;
  enable_memory: boolean;
  memory_config: { max_memories_per_retrieval: number; auto_extract: boolean; importance_threshold: string };
}

export interface KnowledgeBase {
  id: string;
  name: string;
  kbMemoryMode: "disabled" | "subject" | "kb_restricted";
}
