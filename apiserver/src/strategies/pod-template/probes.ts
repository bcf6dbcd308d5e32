// Probes and lifecycle hooks of containers.
import { objectsAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { checkNotNegative, checkOneOf, checkPort, checkPortName, checkRequired } from "../../validation/fields.js";

const HEADER_NAME = /^[-A-Za-z0-9]+$/;
const HEADER_RULE =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const COUNTS = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
/** Kinds of actions, in the order in which kube-apiserver looks for the first one. */
const ACTIONS = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;
const DEFAULT_GRACE_SECONDS = 30;

/** Validates the probes and lifecycle hooks of a container. */
export function checkLife(path: string, container: JsonObject, podSpec: JsonObject): FieldError[] {
  return [
    ...["postStart", "preStop"].flatMap((hook) => {
      const action = objectAt(objectAt(container, "lifecycle"), hook);
      return action === undefined ? [] : checkAction(`${path}.lifecycle.${hook}`, action, podSpec);
    }),
    ...["livenessProbe", "readinessProbe", "startupProbe"].flatMap((name) => {
      const probe = objectAt(container, name);
      return probe === undefined ? [] : checkProbe({ path: `${path}.${name}`, name }, probe, podSpec);
    }),
  ];
}

function checkProbe({ path, name }: { path: string; name: string }, probe: JsonObject, podSpec: JsonObject) {
  const grace = memberOf(probe, "terminationGracePeriodSeconds");
  const successes = memberOf(probe, "successThreshold");
  const isReadiness = name === "readinessProbe";
  return [
    ...checkAction(path, probe, podSpec),
    ...COUNTS.flatMap((count) => checkNotNegative(`${path}.${count}`, memberOf(probe, count))),
    ...(typeof grace === "number" && grace <= 0
      ? [invalidError(`${path}.terminationGracePeriodSeconds`, grace, "must be greater than 0")]
      : []),
    ...(isReadiness || successes === undefined || successes === 1
      ? []
      : [invalidError(`${path}.successThreshold`, successes, "must be 1")]),
    ...(isReadiness && grace !== undefined
      ? [invalidError(`${path}.terminationGracePeriodSeconds`, grace, "must not be set for readinessProbes")]
      : []),
  ];
}

function checkAction(path: string, holder: JsonObject, podSpec: JsonObject): FieldError[] {
  const [first, ...more] = ACTIONS.filter((kind) => objectAt(holder, kind) !== undefined);
  if (first === undefined) return [requiredError(path, "must specify a handler type")];
  return [
    ...CHECKS[first](`${path}.${first}`, objectAt(holder, first) ?? {}, podSpec),
    ...more.map((kind) => forbiddenError(`${path}.${kind}`, "may not specify more than 1 handler type")),
  ];
}

const CHECKS: Record<
  (typeof ACTIONS)[number],
  (path: string, action: JsonObject, podSpec: JsonObject) => FieldError[]
> = {
  exec: (path, action) => (hasItems(action, "command") ? [] : [requiredError(`${path}.command`)]),
  httpGet: checkHttpGet,
  tcpSocket: (path, action) => checkPortOrName(`${path}.port`, memberOf(action, "port")),
  grpc: (path, action) => checkPort(`${path}.port`, memberOf(action, "port") ?? 0),
  sleep: checkSleep,
};

function hasItems(action: JsonObject, list: string): boolean {
  const value = memberOf(action, list);
  return Array.isArray(value) && value.length > 0;
}

function checkHttpGet(path: string, action: JsonObject): FieldError[] {
  const badHeaders = objectsAt(action, "httpHeaders")
    .map((header) => String(memberOf(header, "name") ?? ""))
    .filter((name) => !HEADER_NAME.test(name));
  return [
    ...checkRequired(`${path}.path`, memberOf(action, "path")),
    ...checkPortOrName(`${path}.port`, memberOf(action, "port")),
    ...checkOneOf(`${path}.scheme`, memberOf(action, "scheme"), ["HTTP", "HTTPS"]),
    ...badHeaders.map((name) => invalidError(`${path}.httpHeaders`, name, HEADER_RULE)),
  ];
}

function checkSleep(path: string, action: JsonObject, podSpec: JsonObject): FieldError[] {
  const seconds = Number(memberOf(action, "seconds") ?? 0);
  const grace = Number(memberOf(podSpec, "terminationGracePeriodSeconds") ?? DEFAULT_GRACE_SECONDS);
  if (seconds >= 0 && seconds <= grace) return [];
  const detail = `must be non-negative and less than terminationGracePeriodSeconds (${grace})`;
  return [invalidError(path, seconds, detail)];
}

function checkPortOrName(path: string, port: JsonValue | undefined): FieldError[] {
  return typeof port === "string" ? checkPortName(path, port) : checkPort(path, port ?? 0);
}

/** Validates that an init container that is not a sidecar has no probes and lifecycle hooks. */
export function checkNoLife(path: string, container: JsonObject): FieldError[] {
  return ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"]
    .filter((name) => objectAt(container, name) !== undefined)
    .map((name) =>
      forbiddenError(`${path}.${name}`, "may not be set for init containers without restartPolicy=Always"),
    );
}
