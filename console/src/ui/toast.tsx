import { createContext, type ComponentChildren } from "preact";
import { useCallback, useContext, useEffect, useState } from "preact/hooks";

import { Close } from "./icons";

interface Told {
  text: string;
  undo?: () => void;
}
type Tell = (text: string, undo?: () => void) => void;

const Context = createContext<Tell>(() => undefined);
const SHOWN_MS = 12_000;

export const useTell = (): Tell => useContext(Context);

/** Says what has happened, to eyes and to screen readers, and offers to take it back. */
export function Toasts({ children }: { children: ComponentChildren }) {
  const [told, setTold] = useState<Told | null>(null);
  const tell = useCallback<Tell>((text, undo) => setTold(undo ? { text, undo } : { text }), []);
  useEffect(() => {
    if (!told) return;
    const timer = setTimeout(() => setTold(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [told]);
  return (
    <Context.Provider value={tell}>
      {children}
      <div class="toasts" aria-live="polite">
        {told && (
          <div class="toast">
            <span>{told.text}</span>
            {told.undo && (
              <button type="button" class="link" onClick={() => (told.undo?.(), setTold(null))}>
                Undo
              </button>
            )}
            <button type="button" class="quiet square" aria-label="Dismiss" onClick={() => setTold(null)}>
              <Close />
            </button>
          </div>
        )}
      </div>
    </Context.Provider>
  );
}
