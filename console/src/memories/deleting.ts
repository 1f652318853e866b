import type { Api } from "../api/client";
import type { BatchDeleted, HistoryEntry } from "../api/types";
import { endedVersion } from "./rules";

/** Counts what a deletion takes along, without doing it. */
export function rehearse(api: Api, ids: readonly string[]): Promise<BatchDeleted> {
  return api.post("/memories/entities/batch-delete", { ids: [...ids], dry_run: true });
}

export function remove(api: Api, ids: readonly string[]): Promise<BatchDeleted> {
  return api.post("/memories/entities/batch-delete", { ids: [...ids], dry_run: false });
}

export async function history(api: Api, id: string): Promise<HistoryEntry[]> {
  return api.all<HistoryEntry>(`/memories/entities/${encodeURIComponent(id)}/history`);
}

/** Brings deleted memories back as they were. Answers how many came. */
export async function bringBack(api: Api, ids: readonly string[]): Promise<number> {
  let count = 0;
  for (const id of ids) {
    const version = endedVersion(await history(api, id));
    if (version === null) continue;
    await api.post(`/memories/entities/${encodeURIComponent(id)}/restore`, { version });
    count += 1;
  }
  return count;
}
