/** Paths of the server itself: the index, health checks, metrics, and OpenID Connect discovery of the service account issuer. */
import { ISSUER, type ServiceAccountTokens } from "../identity/service-account-tokens.js";
import type { JsonObject } from "../json.js";
import type { Registry } from "../registry/registry.js";
import { metricsText } from "./metrics.js";
import type { Answer, ApiRequest } from "./request-info.js";

const HEALTH = /^\/(healthz|livez|readyz)(?:\/(.*))?$/;
const PLAIN = "text/plain; charset=utf-8";
const METRICS = "text/plain; version=0.0.4; charset=utf-8";
const CACHED = { "Cache-Control": "public, max-age=3600" };

// The supported checks. kube-apiserver has some thirty, most of them post-start hooks.
const CHECKS: Record<string, string[]> = {
  healthz: ["ping", "log", "etcd"],
  livez: ["ping", "log", "etcd"],
  readyz: ["ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"],
};

/** The sources of these responses. */
export interface ServerFacts {
  registry: Registry;
  tokens: ServiceAccountTokens;
  /** Returns the request metrics in Prometheus format. */
  requestMetrics: () => string[];
}

/** Handles a GET of one of these paths; undefined for any other path. */
export function answerServerPath(
  { registry, tokens, requestMetrics }: ServerFacts,
  { path, query, headers }: ApiRequest,
): Answer | undefined {
  const health = HEALTH.exec(path);
  if (health !== null) return healthAnswer(health[1] as string, health[2] ?? "", query);
  switch (path) {
    case "/":
    case "/index.html":
      return jsonAnswer({ paths: pathsOf(registry) }, { pretty: true });
    case "/metrics":
      return textAnswer(METRICS, metricsText(registry, requestMetrics()));
    case "/.well-known/openid-configuration":
      return jsonAnswer(openIdConfiguration(headers.host ?? ""), { headers: CACHED });
    case "/openid/v1/jwks":
      return jsonAnswer({ keys: [tokens.publicKey()] }, { contentType: "application/jwk-set+json", headers: CACHED });
    default:
      return undefined;
  }
}

function healthAnswer(kind: string, check: string, query: URLSearchParams): Answer | undefined {
  const checks = CHECKS[kind] ?? [];
  if (check !== "") return checks.includes(check) ? textAnswer(PLAIN, "ok") : undefined;
  if (!query.has("verbose")) return textAnswer(PLAIN, "ok");
  const excluded = query.getAll("exclude");
  const lines = checks.map((name) => `[+]${name}${excluded.includes(name) ? " excluded:" : ""} ok\n`);
  return textAnswer(PLAIN, `${lines.join("")}${kind} check passed\n`);
}

function pathsOf({ types }: Registry): string[] {
  const versions = types.map(({ group, version }) => (group === "" ? `/api/${version}` : `/apis/${group}/${version}`));
  const groups = types.flatMap(({ group }) => (group === "" ? [] : [`/apis/${group}`]));
  const health = Object.entries(CHECKS).flatMap(([kind, checks]) => [
    `/${kind}`,
    ...checks.filter((name) => name !== "shutdown").map((name) => `/${kind}/${name}`),
  ]);
  const own = [
    "/.well-known/openid-configuration",
    "/api",
    "/apis",
    "/apis/",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
  ];
  const rest = ["/openapi/v3/", "/openid/v1/jwks", "/version"];
  return [...new Set([...own, ...rest, ...versions, ...groups, ...health])].sort();
}

function openIdConfiguration(host: string): JsonObject {
  return {
    issuer: ISSUER,
    jwks_uri: `https://${host}/openid/v1/jwks`,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES256"],
  };
}

function textAnswer(contentType: string, body: string): Answer {
  return { kind: "answer", status: 200, contentType, body };
}

function jsonAnswer(
  value: JsonObject,
  { contentType = "application/json", headers, pretty = false }: JsonAnswerOptions,
): Answer {
  const body = pretty ? JSON.stringify(value, null, 2) : JSON.stringify(value);
  return { kind: "answer", status: 200, contentType, body, ...(headers === undefined ? {} : { headers }) };
}

interface JsonAnswerOptions {
  contentType?: string;
  headers?: Record<string, string>;
  pretty?: boolean;
}
