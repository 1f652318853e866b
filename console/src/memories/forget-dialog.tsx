import { useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { Entity, Forgotten } from "../api/types";
import { Dialog, Empty, ProblemNotice } from "../ui/parts";
import { useTell } from "../ui/toast";
import { useAction } from "../ui/use-action";
import { TypeChip } from "./list";
import { deletionDone, plural } from "./rules";
import { useUndo } from "./use-undo";

/** Forgetting by words: the service says what they stand for, and only what stays ticked is deleted. */
export function ForgetDialog({ api, onClose, onChanged }: { api: Api; onClose: () => void; onChanged: () => void }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState<Entity[] | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const { busy, problem, run } = useAction();
  const tell = useTell();
  const undo = useUndo(api, onChanged);

  function look(event: Event) {
    event.preventDefault();
    void run(async () => {
      const { candidates } = await api.post<Forgotten>("/memories/forget", { query: words, dry_run: true });
      setFound(candidates);
      setChosen(new Set(candidates.map((one) => one.id)));
    });
  }
  function forget() {
    void run(async () => {
      const { deleted } = await api.post<Forgotten>("/memories/forget", { ids: [...chosen], dry_run: false });
      tell(deletionDone(deleted, 0), undo([...chosen]));
      onChanged();
      onClose();
    });
  }
  function toggle(id: string) {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  }

  return (
    <Dialog title="Forget by words" onClose={onClose}>
      <form class="inline-form" onSubmit={look}>
        <input
          aria-label="What to forget"
          required
          maxLength={1000}
          placeholder="What should be forgotten? e.g. my sister"
          value={words}
          onInput={(e) => setWords(e.currentTarget.value)}
        />
        <button type="submit" disabled={busy}>
          Find
        </button>
      </form>
      {problem && <ProblemNotice problem={problem} />}
      <div aria-live="polite">
        {found?.length === 0 && <Empty title="Nothing fits these words">Nothing would be forgotten.</Empty>}
        {found && found.length > 0 && (
          <fieldset class="candidates">
            <legend>{plural(found.length, "memory fits", "memories fit")}. Nothing has been deleted yet.</legend>
            {found.map((one) => (
              <label key={one.id} class="row">
                <input type="checkbox" checked={chosen.has(one.id)} onChange={() => toggle(one.id)} />
                <span class="row-text">
                  <span class="row-name">{one.name}</span>
                  {one.description !== one.name && <span class="row-more">{one.description}</span>}
                  <span class="row-meta">
                    <TypeChip type={one.entity_type} />
                  </span>
                </span>
              </label>
            ))}
          </fieldset>
        )}
      </div>
      <footer class="dialog-foot">
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button type="button" class="danger" disabled={busy || chosen.size === 0} onClick={forget}>
          Forget {plural(chosen.size, "memory", "memories")}
        </button>
      </footer>
    </Dialog>
  );
}
