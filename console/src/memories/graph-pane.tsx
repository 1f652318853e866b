import type { ComponentChildren } from "preact";

import type { Graph } from "../api/types";
import { Empty, Loading, ProblemNotice } from "../ui/parts";
import { plural } from "./rules";
import type { Focus, Loaded } from "./use-memories";

interface Props {
  loaded: Loaded<Graph>;
  drawn: Graph;
  focus: Focus | null;
  onWhole: () => void;
  children: ComponentChildren;
}

/** The graph with what has to be said of it: how much it shows, and whether that is all. */
export function GraphPane({ loaded, drawn, focus, onWhole, children }: Props) {
  const around = focus ? `Around “${focus.name}”: ` : "";
  return (
    <div class="graph-pane">
      <div class="graph-notes" aria-live="polite">
        {loaded.problem && <ProblemNotice problem={loaded.problem} />}
        {drawn.entities.length > 0 && (
          <p class="muted">
            {around}
            {plural(drawn.entities.length, "memory", "memories")}, {plural(drawn.relations.length, "relation")}
          </p>
        )}
        {drawn.truncated && <p class="chip warn">Truncated: the graph shows a part only. The list has everything.</p>}
        {focus && (
          <button type="button" class="link" onClick={onWhole}>
            Show the whole graph
          </button>
        )}
      </div>
      {children}
      {drawn.entities.length === 0 && (
        <div class="graph-empty">
          {loaded.loading ? <Loading what="the graph" /> : <Empty title="Nothing to draw">Memories and their relations appear here.</Empty>}
        </div>
      )}
    </div>
  );
}
