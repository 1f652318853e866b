import { useState } from "preact/hooks";

import type { Answer, Api } from "../api/client";
import type { JsonObject } from "../api/types";
import { useLoaded } from "../memories/use-memories";
import { Field, Loading, Notice, ProblemNotice } from "../ui/parts";
import { useTell } from "../ui/toast";
import { useAction } from "../ui/use-action";
import { draftOf, errorAt, type Draft, type FieldSpec } from "./fields";

export interface Group {
  title: string;
  fields: readonly FieldSpec[];
}
interface Props {
  api: Api;
  path: string;
  query?: Record<string, string>;
  method: "PATCH" | "PUT";
  groups: readonly Group[];
  /** The body that a draft is sent as; null when nothing has changed. */
  bodyOf: (stored: JsonObject, draft: Draft) => JsonObject | null;
}

/** A resource as a form: read with its ETag, sent with If-Match, refusals shown at their fields. */
export function SettingsForm(props: Props) {
  const [times, setTimes] = useState(0);
  const { api, path, query = {} } = props;
  const loaded = useLoaded((signal) => api.send<JsonObject>("GET", path, { query, signal }), [api, path, times]);
  if (loaded.problem) return <ProblemNotice problem={loaded.problem} />;
  if (!loaded.value) return <Loading what="settings" />;
  return <Form key={`${path} ${loaded.value.etag}`} {...props} stored={loaded.value} onReload={() => setTimes(times + 1)} />;
}

function Form({
  api,
  path,
  query = {},
  method,
  groups,
  bodyOf,
  stored,
  onReload,
}: Props & { stored: Answer<JsonObject>; onReload: () => void }) {
  const fields = groups.flatMap((one) => one.fields);
  const [draft, setDraft] = useState(() => draftOf(stored.body, fields));
  const { busy, problem, run } = useAction();
  const tell = useTell();
  const body = bodyOf(stored.body, draft);
  const placed = problem?.errors.every((one) => fields.some((field) => errorAt([one], field.path)));

  function save(event: Event) {
    event.preventDefault();
    if (!body) return;
    void run(async () => {
      await api.send(method, path, { query, body, ifMatch: stored.etag });
      tell("Settings saved.");
      onReload();
    });
  }
  return (
    <form class="settings" onSubmit={save} noValidate>
      {groups.map((group) => (
        <fieldset key={group.title} class="card">
          <legend>{group.title}</legend>
          {group.fields.map((field) => (
            <Control
              key={field.path}
              field={field}
              value={draft[field.path] ?? ""}
              error={problem ? errorAt(problem.errors, field.path) : undefined}
              onValue={(value) => setDraft({ ...draft, [field.path]: value })}
            />
          ))}
        </fieldset>
      ))}
      {problem?.status === 412 ? (
        <Notice kind="error">
          <p>Somebody else has changed these settings since you opened them. Nothing was saved.</p>
          <button type="button" onClick={onReload}>
            Show the newest
          </button>
        </Notice>
      ) : (
        problem &&
        (placed && problem.errors.length > 0 ? <Notice kind="error">{problem.detail}</Notice> : <ProblemNotice problem={problem} />)
      )}
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy || !body}>
          {busy ? "Saving…" : "Save"}
        </button>
        <button type="button" disabled={!body} onClick={() => setDraft(draftOf(stored.body, fields))}>
          Discard changes
        </button>
      </div>
    </form>
  );
}

interface ControlProps {
  field: FieldSpec;
  value: string | boolean;
  error: string | undefined;
  onValue: (value: string | boolean) => void;
}

function Control({ field, value, error, onValue }: ControlProps) {
  return (
    <Field label={field.label} {...(field.hint ? { hint: field.hint } : {})} error={error}>
      {(id, described) => {
        const common = { id, "aria-describedby": described, "aria-invalid": error !== undefined };
        switch (field.kind) {
          case "switch":
            return (
              <input
                {...common}
                type="checkbox"
                role="switch"
                class="switch"
                checked={value === true}
                onChange={(e) => onValue(e.currentTarget.checked)}
              />
            );
          case "choice":
            return (
              <select {...common} value={String(value)} onChange={(e) => onValue(e.currentTarget.value)}>
                {field.options.map((one) => (
                  <option key={one.value} value={one.value}>
                    {one.label}
                  </option>
                ))}
              </select>
            );
          case "number":
            return (
              <input
                {...common}
                type="number"
                min={field.min}
                max={field.max}
                step={field.step ?? 1}
                value={String(value)}
                onInput={(e) => onValue(e.currentTarget.value)}
              />
            );
          case "text":
            return (
              <input {...common} type="text" maxLength={field.max} value={String(value)} onInput={(e) => onValue(e.currentTarget.value)} />
            );
        }
      }}
    </Field>
  );
}
