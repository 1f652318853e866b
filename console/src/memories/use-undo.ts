import { asProblem, type Api } from "../api/client";
import { useTell } from "../ui/toast";
import { bringBack } from "./deleting";
import { plural } from "./rules";

/** What takes the deletion of memories back, and says whether it did. */
export function useUndo(api: Api, onChanged: () => void): (ids: readonly string[]) => () => void {
  const tell = useTell();
  return (ids) => () => {
    bringBack(api, ids)
      .then((count) => tell(`Brought ${plural(count, "memory", "memories")} back.`))
      .catch((error: unknown) => tell(asProblem(error).detail))
      .finally(onChanged);
  };
}
