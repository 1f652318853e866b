import { useEffect, useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { Entity, EntityView, Relation } from "../api/types";
import { Bin } from "../ui/icons";
import { ProblemNotice } from "../ui/parts";
import { useTell } from "../ui/toast";
import { useAction } from "../ui/use-action";
import { plural, validity } from "./rules";

interface Props {
  api: Api;
  view: EntityView;
  names: ReadonlyMap<string, Entity>;
  onOpen: (id: string) => void;
  onChanged: () => void;
}

/** Names of the other ends that no list or graph on the page has told yet. */
function useNames(api: Api, view: EntityView, known: ReadonlyMap<string, Entity>): (id: string) => string {
  const [found, setFound] = useState<Record<string, string>>({});
  const ends = [
    ...view.outgoing_relations.map((one) => one.target_entity_id),
    ...view.incoming_relations.map((one) => one.source_entity_id),
  ];
  const missing = [...new Set(ends)].filter((id) => id !== view.entity.id && !known.has(id) && !(id in found));
  useEffect(() => {
    for (const id of missing)
      api.get<EntityView>(`/memories/entities/${encodeURIComponent(id)}`).then(
        ({ entity }) => setFound((before) => ({ ...before, [id]: entity.name })),
        () => setFound((before) => ({ ...before, [id]: id })),
      );
  }, [missing.join(" ")]);
  return (id) => (id === view.entity.id ? view.entity.name : (known.get(id)?.name ?? found[id] ?? "…"));
}

export function Relations({ api, view, names, onOpen, onChanged }: Props) {
  const nameOf = useNames(api, view, names);
  const common = { api, nameOf, onOpen, onChanged };
  return (
    <>
      <Edges title="Outgoing relations" edges={view.outgoing_relations} other={(one) => one.target_entity_id} arrow="→" {...common} />
      <Edges title="Incoming relations" edges={view.incoming_relations} other={(one) => one.source_entity_id} arrow="←" {...common} />
    </>
  );
}

interface EdgesProps {
  api: Api;
  title: string;
  edges: Relation[];
  other: (one: Relation) => string;
  arrow: string;
  nameOf: (id: string) => string;
  onOpen: (id: string) => void;
  onChanged: () => void;
}

function Edges({ api, title, edges, other, arrow, nameOf, onOpen, onChanged }: EdgesProps) {
  const [asked, setAsked] = useState<string | null>(null);
  const { problem, run } = useAction();
  const tell = useTell();

  function remove(one: Relation) {
    setAsked(null);
    void run(async () => {
      await api.send("DELETE", `/memories/relations/${encodeURIComponent(one.id)}`);
      tell("Relation removed.");
      onChanged();
    });
  }

  return (
    <section class="drawer-part">
      <h3>
        {title} <span class="count">{edges.length}</span>
      </h3>
      {problem && <ProblemNotice problem={problem} />}
      {edges.length === 0 && <p class="muted">None.</p>}
      <ul class="edges" aria-label={`${title}: ${plural(edges.length, "relation")}`}>
        {edges.map((one) => (
          <li key={one.id}>
            <span class="edge-kind">
              {arrow} {one.relation_type.replaceAll("_", " ")}
            </span>
            <button type="button" class="link edge-end" onClick={() => onOpen(other(one))}>
              {nameOf(other(one))}
            </button>
            {(one.valid_from || one.valid_to) && <span class="edge-when">{validity(one.valid_from, one.valid_to)}</span>}
            {asked === one.id ? (
              <span class="buttons">
                <button type="button" class="danger small" onClick={() => remove(one)}>
                  Remove
                </button>
                <button type="button" class="small" onClick={() => setAsked(null)}>
                  Keep
                </button>
              </span>
            ) : (
              <button
                type="button"
                class="quiet square"
                aria-label={`Remove the relation ${one.relation_type.replaceAll("_", " ")} ${nameOf(other(one))}`}
                onClick={() => setAsked(one.id)}
              >
                <Bin />
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
