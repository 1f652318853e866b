import { describe, expect, it } from "vitest";

import { queryOf } from "../src/api/query";
import type { Entity, HistoryEntry } from "../src/api/types";
import { deletionQuestion, endedVersion, leftOut, matches, matching, parseProperties, validity } from "../src/memories/rules";
import { claimsOf } from "../src/session/session";
import { applied, changes, draftOf, errorAt, type FieldSpec } from "../src/settings/fields";

const memory = (id: string, name: string, more: Partial<Entity> = {}): Entity => ({
  id,
  name,
  entity_type: "fact",
  description: "",
  properties: {},
  aliases: [],
  scope: { kind: "subject", external_subject_id: "ada", knowledge_base_id: null },
  subject: null,
  polarity: "positive",
  provenance: [],
  valid_from: null,
  valid_to: null,
  expires_at: null,
  access_count: 0,
  last_accessed_at: null,
  version: 1,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  ...more,
});
const relation = (id: string, from: string, to: string) => ({
  id,
  source_entity_id: from,
  target_entity_id: to,
  relation_type: "knows",
  description: "",
  valid_from: null,
  valid_to: null,
});

describe("filtering", () => {
  it("finds words in name, alias and description whatever their width and case", () => {
    const one = memory("a", "Green Tea", { aliases: ["Matcha"], description: "From  Uji" });
    expect(["ｇｒｅｅｎ", "matcha", "from uji", ""].map((words) => matches(one, words, []))).toEqual([true, true, true, true]);
    expect(matches(one, "coffee", [])).toBe(false);
  });
  it("takes any of several types", () => {
    const one = memory("a", "Bergen", { entity_type: "location" });
    expect([matches(one, "", ["person", "location"]), matches(one, "", ["person"])]).toEqual([true, false]);
  });
  it("keeps only relations whose two ends are shown", () => {
    const graph = {
      entities: [memory("a", "tea"), memory("b", "tea pot"), memory("c", "cup")],
      relations: [relation("1", "a", "b"), relation("2", "a", "c")],
      truncated: true,
    };
    const shown = matching(graph, "tea", []);
    expect([shown.entities.map((one) => one.id), shown.relations.map((one) => one.id), shown.truncated]).toEqual([["a", "b"], ["1"], true]);
  });
});

describe("editing", () => {
  it.each(["[]", "null", "3", "{", '{"a":}'])("refuses %s as properties", (text) => {
    expect(parseProperties(text)).toHaveProperty("error");
  });
  it("reads an object, and nothing as an empty one", () => {
    expect([parseProperties('{"a": {"b": [1]}}'), parseProperties("  ")]).toEqual([{ value: { a: { b: [1] } } }, { value: {} }]);
  });
  it("names the keys that a merge leaves as they are", () => {
    expect(leftOut({ a: 1, b: 2 }, { b: 3, c: 4 })).toEqual(["a"]);
  });
});

describe("deleting", () => {
  it("says how many relations go", () => {
    expect([deletionQuestion(1, 0), deletionQuestion(3, 1)]).toEqual([
      "1 memory will be deleted. No relation goes with it.",
      "3 memories will be deleted. 1 relation goes with them.",
    ]);
  });
  it("brings back the version that the deletion ended", () => {
    const entry = (version: number, action: HistoryEntry["action"]) => ({
      version,
      action,
      actor: { kind: "user", id: "a" },
      changes: [],
      source_message_id: null,
      at: "",
    });
    expect(endedVersion([entry(1, "created"), entry(2, "updated"), entry(3, "deleted")])).toBe(2);
    expect(endedVersion([entry(1, "created"), entry(2, "deleted"), entry(3, "restored")])).toBeNull();
  });
});

it("tells open and closed validity", () => {
  const from = "2024-03-01T00:00:00.000Z";
  expect([validity(null, null), validity(from, null), validity(null, from), validity(from, "2025-01-01T00:00:00.000Z")]).toEqual([
    "always",
    "since 2024-03-01",
    "until 2024-03-01",
    "2024-03-01 until 2025-01-01",
  ]);
});

it("writes lists of a query as repeated parameters and leaves out what is not set", () => {
  expect(queryOf({ q: "a&b", entity_type: ["fact", "goal"], page: undefined })).toBe("?q=a%26b&entity_type=fact&entity_type=goal");
});

describe("tokens", () => {
  const jwt = (claims: object) =>
    `x.${btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(claims))))
      .replaceAll("+", "-")
      .replaceAll("/", "_")}.y`;
  it("takes role, name and tenant from a dashboard token, in any script", () => {
    expect(claimsOf(jwt({ sub: "Żaneta 花子", role: "admin", tenant_id: "ten_1" }))).toEqual({
      kind: "user",
      name: "Żaneta 花子",
      role: "admin",
      tenantId: "ten_1",
    });
  });
  it("offers no more than a member's pages for a role that it does not know", () => {
    expect(claimsOf(jwt({ sub: "a", role: "owner" })).role).toBe("member");
  });
  it.each(["tm_abc", "a.b.c", ""])("takes %s for an API key", (token) => {
    expect(claimsOf(token).kind).toBe("api_key");
  });
});

describe("settings", () => {
  const fields: FieldSpec[] = [
    { kind: "choice", path: "mode", label: "", options: [] },
    { kind: "number", path: "extraction.cooldown_seconds", label: "", min: 1, max: 9, nullable: true },
    { kind: "switch", path: "extraction.async_enabled", label: "" },
  ];
  const stored = { mode: "durable", extraction: { cooldown_seconds: 180, async_enabled: true, model_id: "m" } };
  it("sends what changed and nothing else", () => {
    expect(changes(stored, draftOf(stored, fields), fields)).toEqual({});
    expect(changes(stored, { ...draftOf(stored, fields), "extraction.cooldown_seconds": "60" }, fields)).toEqual({
      extraction: { cooldown_seconds: 60 },
    });
  });
  it("sends an emptied number as null, which inherits", () => {
    expect(changes(stored, { ...draftOf(stored, fields), "extraction.cooldown_seconds": "" }, fields)).toEqual({
      extraction: { cooldown_seconds: null },
    });
  });
  it("puts a draft into the whole resource without touching the rest", () => {
    expect(applied(stored, { "extraction.async_enabled": false }, fields)).toEqual({
      mode: "durable",
      extraction: { cooldown_seconds: 180, async_enabled: false, model_id: "m" },
    });
  });
  it("finds the refusal of a field by its pointer", () => {
    expect(errorAt([{ path: "/extraction/cooldown_seconds", message: "too long" }], "extraction.cooldown_seconds")).toBe("too long");
  });
});
