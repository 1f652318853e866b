import { useEffect, useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { BatchDeleted } from "../api/types";
import { Dialog, Loading, ProblemNotice } from "../ui/parts";
import { useTell } from "../ui/toast";
import { useAction } from "../ui/use-action";
import { rehearse, remove } from "./deleting";
import { deletionDone, deletionQuestion, plural } from "./rules";
import { useUndo } from "./use-undo";

/** Says what a deletion takes along before it is done, and offers to take it back afterwards. */
export function DeleteDialog({
  api,
  ids,
  onClose,
  onChanged,
}: {
  api: Api;
  ids: readonly string[];
  onClose: () => void;
  onChanged: () => void;
}) {
  const [counted, setCounted] = useState<BatchDeleted | null>(null);
  const { busy, problem, run } = useAction();
  const tell = useTell();
  const undo = useUndo(api, onChanged);
  useEffect(() => {
    void run(async () => setCounted(await rehearse(api, ids)));
  }, []);

  function confirm() {
    void run(async () => {
      const done = await remove(api, ids);
      tell(deletionDone(done.deleted, done.relations_deleted), undo(ids));
      onChanged();
      onClose();
    });
  }

  return (
    <Dialog title="Delete memories" onClose={onClose}>
      {problem ? <ProblemNotice problem={problem} /> : counted ? <Question counted={counted} /> : <Loading what="what this would delete" />}
      <footer class="dialog-foot">
        <button type="button" onClick={onClose}>
          Keep
        </button>
        <button type="button" class="danger" disabled={!counted || counted.deleted === 0 || busy} onClick={confirm}>
          {busy && counted ? "Deleting…" : "Delete"}
        </button>
      </footer>
    </Dialog>
  );
}

function Question({ counted }: { counted: BatchDeleted }) {
  return (
    <div class="stack" role="status">
      <p>{deletionQuestion(counted.deleted, counted.relations_deleted)}</p>
      {counted.not_found.length > 0 && <p>{plural(counted.not_found.length, "memory is", "memories are")} already gone.</p>}
      <p class="muted">This can be undone for 30 days.</p>
    </div>
  );
}
