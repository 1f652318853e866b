import type { FieldError } from "../api/client";
import type { Json, JsonObject } from "../api/types";

interface Common {
  /** Place in the resource: names joined by dots. */
  path: string;
  label: string;
  hint?: string;
}
export type FieldSpec =
  | (Common & { kind: "switch" })
  | (Common & { kind: "text"; max: number })
  | (Common & { kind: "number"; min: number; max: number; step?: number; nullable?: boolean })
  | (Common & { kind: "choice"; options: readonly { value: string; label: string }[] });

/** A draft holds what stands in the controls: numbers as typed text. */
export type Draft = Record<string, string | boolean>;

export function valueAt(resource: JsonObject, path: string): Json | undefined {
  return path
    .split(".")
    .reduce<Json | undefined>(
      (place, name) => (typeof place === "object" && place !== null && !Array.isArray(place) ? place[name] : undefined),
      resource,
    );
}

export function draftOf(resource: JsonObject, fields: readonly FieldSpec[]): Draft {
  const draft: Draft = {};
  for (const field of fields) {
    const value = valueAt(resource, field.path);
    draft[field.path] = field.kind === "switch" ? value === true : value === null || value === undefined ? "" : String(value);
  }
  return draft;
}

function parsed(field: FieldSpec, value: string | boolean): Json {
  if (field.kind !== "number") return value;
  // What is no number goes as it is: the service says what is wrong with it, in the same place as every other refusal.
  if (value === "") return null;
  return Number.isFinite(Number(value)) ? Number(value) : value;
}

function put(target: JsonObject, path: string, value: Json): void {
  const names = path.split(".");
  const last = names.pop() ?? path;
  let place = target;
  for (const name of names) place = (place[name] ??= {}) as JsonObject;
  place[last] = value;
}

/** The fields that a draft gives another value, as a partial resource. */
export function changes(resource: JsonObject, draft: Draft, fields: readonly FieldSpec[]): JsonObject {
  const before = draftOf(resource, fields);
  const changed: JsonObject = {};
  for (const field of fields) {
    const value = draft[field.path];
    if (value !== undefined && value !== before[field.path]) put(changed, field.path, parsed(field, value));
  }
  return changed;
}

/** A resource with a draft's values in their places. */
export function applied(resource: JsonObject, draft: Draft, fields: readonly FieldSpec[]): JsonObject {
  const whole = structuredClone(resource);
  for (const field of fields) {
    const value = draft[field.path];
    if (value !== undefined) put(whole, field.path, parsed(field, value));
  }
  return whole;
}

/** What the service said of a field; `errors[].path` is a JSON Pointer. */
export function errorAt(errors: readonly FieldError[], path: string): string | undefined {
  const pointer = `/${path.replaceAll(".", "/")}`;
  const found = errors.filter((one) => one.path === pointer).map((one) => one.message);
  return found.length ? found.join(" ") : undefined;
}
