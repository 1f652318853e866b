import type { Query } from "../api/query";

export type Role = "admin" | "member" | "platform";
/** Whose memory is looked at. Neither: a dashboard user's whole tenant. */
export interface Scope {
  subject?: string;
  base?: string;
}
export interface Session {
  token: string;
  scope: Scope;
}
/** What a token says of its holder. The service decides by the token itself; this only decides what is shown. */
export interface Claims {
  kind: "api_key" | "user";
  name: string;
  role: Role | null;
  tenantId: string | null;
}

const PLACE = "tidemark.session";

export function claimsOf(token: string): Claims {
  const claims = payloadOf(token);
  if (claims === null) return { kind: "api_key", name: "API key", role: null, tenantId: null };
  const role = claims.role === "admin" || claims.role === "platform" ? claims.role : "member";
  return {
    kind: "user",
    name: typeof claims.sub === "string" ? claims.sub : "unknown",
    role,
    tenantId: typeof claims.tenant_id === "string" ? claims.tenant_id : null,
  };
}

function payloadOf(token: string): Record<string, unknown> | null {
  const parts = token.split(".");
  if (parts.length !== 3) return null;
  try {
    const bytes = Uint8Array.from(atob((parts[1] ?? "").replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

export function scopeQuery(scope: Scope): Query {
  return { external_subject_id: scope.subject || undefined, knowledge_base_id: scope.base || undefined };
}

export function scopeName(scope: Scope): string {
  if (scope.base) return `Knowledge base ${scope.base}`;
  return scope.subject ? scope.subject : "Whole tenant";
}

/** Ends with the tab: sessionStorage is neither shared between tabs nor kept. */
export function kept(): Session | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(PLACE) ?? "null") as Session | null;
    return found && typeof found.token === "string" ? found : null;
  } catch {
    return null;
  }
}

export function keep(session: Session | null): void {
  if (session) sessionStorage.setItem(PLACE, JSON.stringify(session));
  else sessionStorage.removeItem(PLACE);
}
