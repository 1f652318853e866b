import { useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { Entity, HistoryEntry, Json } from "../api/types";
import { Loading, ProblemNotice, Time } from "../ui/parts";
import { useTell } from "../ui/toast";
import { useAction } from "../ui/use-action";
import { history } from "./deleting";
import { useLoaded } from "./use-memories";

const shown = (value: Json) => (value === null || value === "" ? "—" : typeof value === "string" ? value : JSON.stringify(value));

/** Every change of a memory, newest first, each version of which can come back. */
export function History({ api, entity, onChanged }: { api: Api; entity: Entity; onChanged: () => void }) {
  const [open, setOpen] = useState(false);
  const loaded = useLoaded(open ? () => history(api, entity.id) : null, [open, entity.id, entity.version]);
  return (
    <details class="drawer-part history" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h3>History</h3>
      </summary>
      {loaded.loading && !loaded.value && <Loading what="the history" />}
      {loaded.problem && <ProblemNotice problem={loaded.problem} />}
      <ol class="versions">
        {loaded.value?.toReversed().map((one) => (
          <Version key={one.version} api={api} entity={entity} entry={one} onChanged={onChanged} />
        ))}
      </ol>
    </details>
  );
}

function Version({ api, entity, entry, onChanged }: { api: Api; entity: Entity; entry: HistoryEntry; onChanged: () => void }) {
  const { problem, run } = useAction();
  const tell = useTell();
  function restore() {
    void run(async () => {
      await api.post(`/memories/entities/${encodeURIComponent(entity.id)}/restore`, { version: entry.version });
      tell(`Version ${entry.version} is back.`);
      onChanged();
    });
  }
  return (
    <li>
      <div class="version-head">
        <b>
          {entry.version}. {entry.action}
        </b>
        <span class="muted">
          <Time at={entry.at} /> by {entry.actor.kind} {entry.actor.id}
        </span>
        {entry.version !== entity.version && entry.action !== "deleted" && (
          <button type="button" class="small" onClick={restore} aria-label={`Restore version ${entry.version}`}>
            Restore
          </button>
        )}
      </div>
      {problem && <ProblemNotice problem={problem} />}
      {entry.changes.length > 0 && (
        <dl class="changes">
          {entry.changes.map((one) => (
            <div key={one.field}>
              <dt>{one.field}</dt>
              <dd>
                {entry.action !== "created" && <del>{shown(one.old)}</del>} <ins>{shown(one.new)}</ins>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  );
}
