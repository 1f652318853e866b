import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import type { Problem } from "../api/client";
import { Close } from "./icons";

export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: string;
  error?: string | undefined;
  children: (id: string, described: string | undefined) => ComponentChildren;
}) {
  const id = useId();
  const described = hint || error ? `${id}-note` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, described)}
      {described && (
        <div id={described}>
          {error && (
            <p class="field-error" role="alert">
              {error}
            </p>
          )}
          {hint && <p class="hint">{hint}</p>}
        </div>
      )}
    </div>
  );
}

export function Notice({ kind = "info", children }: { kind?: "info" | "warn" | "error" | "good"; children: ComponentChildren }) {
  return (
    <div class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
      {children}
    </div>
  );
}

/** A problem in the service's own words, with the places it names. */
export function ProblemNotice({ problem, children }: { problem: Problem; children?: ComponentChildren }) {
  return (
    <Notice kind="error">
      <p>{problem.detail}</p>
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((one) => (
            <li key={one.path + one.message}>
              <code>{one.path || "/"}</code> {one.message}
            </li>
          ))}
        </ul>
      )}
      {children}
    </Notice>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="muted">{children}</div>}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> Loading {what}…
    </p>
  );
}

/** A modal question. The browser's own dialog keeps the focus inside and closes on Escape. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet square" aria-label="Close" onClick={onClose}>
          <Close />
        </button>
      </header>
      {children}
    </dialog>
  );
}

const WHEN = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at}>
      {WHEN.format(new Date(at))}
    </time>
  );
}

export interface Option<T extends string> {
  value: T;
  label: string;
}

/** A few choices of which one is on. */
export function Segments<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly Option<T>[];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map((one) => (
        <button key={one.value} type="button" aria-pressed={one.value === value} onClick={() => onChange(one.value)}>
          {one.label}
        </button>
      ))}
    </div>
  );
}
