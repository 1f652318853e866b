import { useState } from "preact/hooks";

import { useTell } from "../ui/toast";
import { BATCH, plural } from "./rules";

export interface Selection {
  selecting: boolean;
  chosen: ReadonlySet<string>;
  begin: () => void;
  end: () => void;
  toggle: (id: string) => void;
  add: (ids: readonly string[]) => void;
}

/** Select Mode: which memories are ticked, in the list or the graph. */
export function useSelection(): Selection {
  const [selecting, setSelecting] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const tell = useTell();
  function put(next: Set<string>) {
    if (next.size > BATCH) tell(`At most ${BATCH} memories can be deleted at once.`);
    setChosen(new Set([...next].slice(0, BATCH)));
  }
  return {
    selecting,
    chosen,
    begin: () => setSelecting(true),
    end: () => {
      setSelecting(false);
      setChosen(new Set());
    },
    toggle: (id) => {
      const next = new Set(chosen);
      if (!next.delete(id)) next.add(id);
      put(next);
    },
    add: (ids) => put(new Set([...chosen, ...ids])),
  };
}

export function SelectionBar({ selection, onAll, onDelete }: { selection: Selection; onAll: () => void; onDelete: () => void }) {
  return (
    <div class="selection" role="region" aria-label="Selection">
      <span aria-live="polite">{plural(selection.chosen.size, "memory", "memories")} selected</span>
      <span class="muted wide-only">Tick them in the list, or draw a box in the graph.</span>
      <button type="button" onClick={onAll}>
        Select all shown
      </button>
      <button type="button" class="danger" disabled={selection.chosen.size === 0} onClick={onDelete}>
        Delete selected
      </button>
      <button type="button" onClick={selection.end}>
        Done
      </button>
    </div>
  );
}
