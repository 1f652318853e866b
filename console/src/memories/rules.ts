import type { Entity, EntityType, Graph, HistoryEntry, JsonObject } from "../api/types";

/** Text as the service compares it: one form for width and case, one blank between words. */
export function fold(text: string): string {
  return text.normalize("NFKC").toLowerCase().replace(/\s+/gu, " ").trim();
}

export function matches(entity: Entity, words: string, types: readonly EntityType[]): boolean {
  if (types.length > 0 && !types.includes(entity.entity_type)) return false;
  const needle = fold(words);
  return needle === "" || [entity.name, ...entity.aliases, entity.description].some((text) => fold(text).includes(needle));
}

/** The part of a graph whose memories match, with the relations between them. */
export function matching(graph: Graph, words: string, types: readonly EntityType[]): Graph {
  const entities = graph.entities.filter((one) => matches(one, words, types));
  const inside = new Set(entities.map((one) => one.id));
  return {
    ...graph,
    entities,
    relations: graph.relations.filter((one) => inside.has(one.source_entity_id) && inside.has(one.target_entity_id)),
  };
}

/** A graph with further memories, each once. */
export function joined(graph: Graph, entities: readonly Entity[]): Graph {
  const inside = new Set(graph.entities.map((one) => one.id));
  return { ...graph, entities: [...entities.filter((one) => !inside.has(one.id)), ...graph.entities] };
}

export type Parsed = { value: JsonObject } | { error: string };

export function parseProperties(text: string): Parsed {
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: value as JsonObject };
    return { error: "Properties are one JSON object: { … }." };
  } catch (error) {
    return { error: `This is not JSON: ${error instanceof Error ? error.message : "it cannot be read"}` };
  }
}

/** Keys that an edit left out. The service merges properties, so these keep their values. */
export function leftOut(stored: JsonObject, edited: JsonObject): string[] {
  return Object.keys(stored).filter((key) => !(key in edited));
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

const memories = (count: number) => plural(count, "memory", "memories");
const relations = (count: number) => plural(count, "relation");

export function deletionQuestion(deleted: number, gone: number): string {
  const goes = gone === 0 ? "No relation goes" : `${relations(gone)} ${gone === 1 ? "goes" : "go"}`;
  return `${memories(deleted)} will be deleted. ${goes} with ${deleted === 1 ? "it" : "them"}.`;
}

export function deletionDone(deleted: number, gone: number): string {
  return `Deleted ${memories(deleted)}${gone ? ` and ${relations(gone)}` : ""}.`;
}

/** What can be deleted in one call. */
export const BATCH = 100;

/** The version that a deletion ended, by a history that is oldest first; null where nothing was deleted last. */
export function endedVersion(history: readonly HistoryEntry[]): number | null {
  const last = history.at(-1);
  return last?.action === "deleted" ? (history.at(-2)?.version ?? null) : null;
}

/** Validity in words; both ends may be open. */
export function validity(from: string | null, to: string | null): string {
  const day = (at: string) => at.slice(0, 10);
  if (from && to) return `${day(from)} until ${day(to)}`;
  if (from) return `since ${day(from)}`;
  return to ? `until ${day(to)}` : "always";
}

export function closed(one: { valid_to: string | null }, at: Date): boolean {
  return one.valid_to !== null && new Date(one.valid_to) <= at;
}
