import { useState } from "preact/hooks";

import { asProblem, type Problem } from "../api/client";

export interface Action {
  busy: boolean;
  /** What the last run was refused with. */
  problem: Problem | null;
  run: (work: () => Promise<unknown>) => Promise<void>;
}

/** Something that a person sets off and the service may refuse. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  async function run(work: () => Promise<unknown>) {
    setBusy(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  }
  return { busy, problem, run };
}
