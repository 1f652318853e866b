import { useState } from "preact/hooks";

import type { Api } from "../api/client";
import type { Entity } from "../api/types";
import { Field, Notice, ProblemNotice } from "../ui/parts";
import { useTell } from "../ui/toast";
import { useAction } from "../ui/use-action";
import { leftOut, parseProperties } from "./rules";

interface Props {
  api: Api;
  entity: Entity;
  etag: string | null;
  onSaved: () => void;
  onCancel: () => void;
  /** Reads the memory again; the text being edited stays. */
  onReload: () => Promise<void>;
}

export function EditForm({ api, entity, etag, onSaved, onCancel, onReload }: Props) {
  const [description, setDescription] = useState(entity.description);
  const [text, setText] = useState(JSON.stringify(entity.properties, null, 2));
  const { busy, problem, run } = useAction();
  const [unreadable, setUnreadable] = useState<string | null>(null);
  const tell = useTell();
  const at = (path: string) =>
    problem?.errors
      .filter((one) => one.path === path || one.path.startsWith(`${path}/`))
      .map((one) => one.message)
      .join(" ");

  function save(event: Event) {
    event.preventDefault();
    const parsed = parseProperties(text);
    setUnreadable("error" in parsed ? parsed.error : null);
    if ("error" in parsed) return;
    void run(async () => {
      const body = { properties: parsed.value, ...(description !== entity.description ? { description } : {}) };
      await api.send("PUT", `/memories/entities/${encodeURIComponent(entity.id)}`, { body, ifMatch: etag });
      const stayed = leftOut(entity.properties, parsed.value);
      tell(stayed.length ? `Saved. Left out, and so unchanged: ${stayed.join(", ")}.` : "Saved.");
      onSaved();
    });
  }
  function reload(keepText: boolean) {
    void run(async () => {
      await onReload();
      if (!keepText) onCancel();
    });
  }

  return (
    <form class="stack edit" onSubmit={save}>
      <Field label="Description" error={at("/description")}>
        {(id, described) => (
          <textarea
            id={id}
            aria-describedby={described}
            rows={3}
            maxLength={20_000}
            value={description}
            onInput={(e) => setDescription(e.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Properties (JSON)" hint="Merged key by key: a key left out keeps its value." error={unreadable ?? at("/properties")}>
        {(id, described) => (
          <textarea
            id={id}
            class="code"
            spellcheck={false}
            rows={8}
            aria-describedby={described}
            aria-invalid={unreadable !== null || Boolean(at("/properties"))}
            value={text}
            onInput={(e) => setText(e.currentTarget.value)}
          />
        )}
      </Field>
      {problem?.status === 412 ? (
        <Notice kind="error">
          <p>Somebody else has changed this memory since you opened it. Nothing was saved.</p>
          <div class="buttons">
            <button type="button" onClick={() => reload(false)}>
              Discard mine, show the newest
            </button>
            <button type="button" onClick={() => reload(true)}>
              Keep my text on top of it
            </button>
          </div>
        </Notice>
      ) : (
        problem && <ProblemNotice problem={problem} />
      )}
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy || problem?.status === 412}>
          {busy ? "Saving…" : "Save"}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
