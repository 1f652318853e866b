import { queryOf, type Query } from "./query";
import type { Json, Page } from "./types";

export interface FieldError {
  path: string;
  message: string;
}

/** What the service said instead of an answer (problem+json), or that it could not be reached (status 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly errors: FieldError[] = [],
  ) {
    super(detail);
  }
}

export interface Answer<T> {
  body: T;
  etag: string | null;
}
interface Request {
  query?: Query;
  body?: unknown;
  ifMatch?: string | null;
  signal?: AbortSignal;
}

/** The address of the API: the folder above the console's own. */
export const API_BASE = new URL("..", document.baseURI);

export async function problemOf(answer: Response): Promise<Problem> {
  try {
    const body = (await answer.json()) as Partial<Problem>;
    return new Problem(answer.status, body.code ?? "unknown", body.detail ?? answer.statusText, body.errors ?? []);
  } catch {
    return new Problem(answer.status, "unknown", `The service answered ${answer.status}.`);
  }
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "unreachable", "The service cannot be reached. Check the connection and try again.");
}

/** Calls the API with one token and one scope; both come from the session alone. */
export class Api {
  constructor(
    private readonly token: string,
    private readonly scope: Query = {},
    private readonly refused: () => void = () => undefined,
  ) {}

  async send<T>(method: string, path: string, { query = {}, body, ifMatch, signal }: Request = {}): Promise<Answer<T>> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (ifMatch) headers["If-Match"] = ifMatch;
    const answer = await fetch(new URL(`v1${path}${queryOf({ ...this.scope, ...query })}`, API_BASE), {
      method,
      headers,
      cache: "no-store",
      body: body === undefined ? null : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    });
    if (!answer.ok) {
      if (answer.status === 401) this.refused();
      throw await problemOf(answer);
    }
    const text = await answer.text();
    return { body: (text ? JSON.parse(text) : null) as T, etag: answer.headers.get("ETag") };
  }

  async get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return (await this.send<T>("GET", path, { query, ...(signal ? { signal } : {}) })).body;
  }

  async post<T>(path: string, body: Json | object, signal?: AbortSignal): Promise<T> {
    return (await this.send<T>("POST", path, { body, ...(signal ? { signal } : {}) })).body;
  }

  /** All items of a list with cursors. */
  async all<T>(path: string): Promise<T[]> {
    const found: T[] = [];
    let cursor: string | undefined;
    do {
      const page: Page<T> = await this.get(path, { limit: 100, cursor });
      found.push(...page.items);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
    return found;
  }
}
