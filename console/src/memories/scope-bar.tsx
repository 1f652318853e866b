import { useEffect, useId, useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { KnowledgeBase } from "../api/types";
import type { Claims, Scope } from "../session/session";

type Kind = "tenant" | "subject" | "base";

function kindOf(scope: Scope): Kind {
  if (scope.base) return "base";
  return scope.subject ? "subject" : "tenant";
}

/** Whose memory is shown. A token decides what may be asked for; this only asks. */
export function ScopeBar({ api, claims, scope, onScope }: { api: Api; claims: Claims; scope: Scope; onScope: (scope: Scope) => void }) {
  const [kind, setKind] = useState<Kind>(kindOf(scope));
  const [name, setName] = useState(scope.base ?? scope.subject ?? "");
  const [bases, setBases] = useState<KnowledgeBase[]>([]);
  const list = useId();
  useEffect(() => {
    if (claims.role !== "admin") return;
    api.all<KnowledgeBase>("/knowledge-bases").then(
      (found) => setBases(found.filter((one) => one.kbMemoryMode === "kb_restricted")),
      () => setBases([]),
    );
  }, [claims.tenantId]);
  function apply(event: Event) {
    event.preventDefault();
    const given = kind === "base" ? name.trim() : name;
    onScope(kind === "tenant" ? {} : kind === "subject" ? { subject: given } : { base: given });
  }
  function choose(next: Kind) {
    setKind(next);
    setName("");
    if (next === "tenant") onScope({});
  }
  return (
    <form class="scope" onSubmit={apply} aria-label="Whose memory">
      <label>
        <span class="label">Memory of</span>
        <select value={kind} onChange={(event) => choose(event.currentTarget.value as Kind)}>
          {claims.kind === "user" && <option value="tenant">the whole tenant</option>}
          <option value="subject">one person</option>
          <option value="base">a knowledge base</option>
        </select>
      </label>
      {kind !== "tenant" && (
        <>
          <input
            aria-label={kind === "subject" ? "Subject" : "Knowledge base"}
            placeholder={kind === "subject" ? "external_subject_id" : "kb_…"}
            required
            maxLength={256}
            list={kind === "base" ? list : undefined}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <datalist id={list}>
            {bases.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </datalist>
          <button type="submit">Show</button>
        </>
      )}
    </form>
  );
}
