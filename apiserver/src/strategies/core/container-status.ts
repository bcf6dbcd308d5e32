// What is said of the containers of a Pod.
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";

const ID_RULE = "must be between 0 and 2147483647, inclusive";
const MAX_ID = 2 ** 31 - 1;
const MAX_MESSAGE = 1024;
const HEALTH = ["Healthy", "Unhealthy", "Unknown"];
const KINDS = [
  ["containerStatuses", "containers"],
  ["initContainerStatuses", "initContainers"],
  ["ephemeralContainerStatuses", "ephemeralContainers"],
] as const;

/** Checks what the status of a Pod says of its containers. */
export function checkContainerStatuses(pod: JsonObject, live: JsonObject): FieldError[] {
  return KINDS.flatMap(([list, containers]) => {
    const path = `status.${list}`;
    const statuses = objectsAt(pod, path);
    return [
      ...checkRestarts(path, { statuses, live, containers }),
      ...statuses.flatMap((one, index) => checkUser(`${path}[${index}]`, one, textAt(pod, "spec.os.name"))),
      ...statuses.flatMap((one, index) => {
        const at = `${path}[${index}].allocatedResourcesStatus`;
        if (containers === "ephemeralContainers") return checkNone(at, one);
        return checkAllocated(at, one, objectsAt(pod, `spec.${containers}`));
      }),
    ];
  });
}

interface Restarts {
  readonly statuses: JsonObject[];
  readonly live: JsonObject;
  readonly containers: (typeof KINDS)[number][1];
}

// What has ended runs again only if its policy lets it.
function checkRestarts(path: string, { statuses, live, containers }: Restarts): FieldError[] {
  if (containers !== "ephemeralContainers" && allMayRestart(live)) return [];
  return objectsAt(live, path).flatMap((before, index) => {
    const ended = objectAt(objectAt(before, "state"), "terminated");
    const now = statuses.find((one) => textAt(one, "name") === textAt(before, "name"));
    if (ended === undefined || now === undefined || objectAt(objectAt(now, "state"), "terminated") !== undefined)
      return [];
    const container = objectsAt(live, `spec.${containers}`).find(
      (one) => textAt(one, "name") === textAt(before, "name"),
    );
    const code = Number(memberOf(ended, "exitCode") ?? 0);
    const mayRestart =
      containers !== "ephemeralContainers" && container !== undefined && isRestarted(container, live, code);
    return mayRestart
      ? []
      : [forbiddenError(`${path}[${index}].state`, "may not be transitioned to non-terminated state")];
  });
}

function allMayRestart(pod: JsonObject): boolean {
  return ["containers", "initContainers"].some((list) =>
    objectsAt(pod, `spec.${list}`).some((container) =>
      objectsAt(container, "restartPolicyRules").some((rule) => textAt(rule, "action") === "RestartAllContainers"),
    ),
  );
}

function isRestarted(container: JsonObject, pod: JsonObject, code: number): boolean {
  const isMet = (rule: JsonObject) => {
    const codes = objectAt(rule, "exitCodes");
    const isListed = (arrayAt(codes, "values") ?? []).includes(code);
    return codes !== undefined && isListed === (textAt(codes, "operator") === "In");
  };
  const rule = objectsAt(container, "restartPolicyRules").find(isMet);
  if (rule !== undefined && textAt(rule, "action") === "Restart") return true;
  const own = textAt(container, "restartPolicy");
  const policy = own === "" ? textAt(pod, "spec.restartPolicy") : own;
  return policy === "Always" || (policy === "OnFailure" && code !== 0);
}

function checkUser(path: string, status: JsonObject, system: string): FieldError[] {
  const user = objectAt(objectAt(status, "user"), "linux");
  if (user === undefined) return [];
  if (system === "windows") return [forbiddenError(`${path}.user.linux`, "cannot be set for a windows pod")];
  const check = (field: string, id: number) =>
    id < 0 || id > MAX_ID ? [invalidError(`${path}.user.linux.${field}`, id, ID_RULE)] : [];
  return [
    ...["uid", "gid"].flatMap((key) => check(key, Number(memberOf(user, key) ?? 0))),
    ...(arrayAt(user, "supplementalGroups") ?? []).flatMap((group, index) =>
      check(`supplementalGroups[${index}]`, Number(group)),
    ),
  ];
}

function checkNone(field: string, status: JsonObject): FieldError[] {
  return objectsAt(status, "allocatedResourcesStatus").length === 0
    ? []
    : [forbiddenError(field, "must not be specified in container status")];
}

const NO_CLAIM =
  "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";

function checkAllocated(path: string, status: JsonObject, containers: JsonObject[]): FieldError[] {
  const container = containers.find((one) => textAt(one, "name") === textAt(status, "name"));
  const resources = objectAt(container, "resources");
  const claims = objectsAt(resources ?? {}, "claims").map((claim) => {
    const request = textAt(claim, "request");
    return `claim:${textAt(claim, "name")}${request === "" ? "" : `/${request}`}`;
  });
  const known = [...claims, ...Object.keys(objectAt(resources, "requests") ?? {})];
  return objectsAt(status, "allocatedResourcesStatus").flatMap((allocated, index) => {
    const [at, name] = [`${path}[${index}]`, textAt(allocated, "name")];
    const detail = name.startsWith("claim:") ? NO_CLAIM : "must match one of the container's resource requests";
    return [
      ...(container === undefined || known.includes(name) ? [] : [invalidError(`${at}.name`, name, detail)]),
      ...checkHealth(at, objectsAt(allocated, "resources")),
    ];
  });
}

function checkMessage(field: string, message: JsonValue | undefined): FieldError[] {
  if (typeof message !== "string") return [];
  if (message === "") return [requiredError(field, "must be non-empty if specified")];
  return Buffer.byteLength(message) > MAX_MESSAGE ? [tooLongError(field, MAX_MESSAGE)] : [];
}

function checkHealth(path: string, resources: JsonObject[]): FieldError[] {
  const ids = resources.map((resource) => textAt(resource, "resourceID"));
  return resources.flatMap((resource, index) => {
    const [at, health, id] = [`${path}.resources[${index}]`, textAt(resource, "health"), ids[index] ?? ""];
    return [
      ...(HEALTH.includes(health) ? [] : [notSupportedError(`${at}.health`, health, HEALTH)]),
      ...checkMessage(`${at}.message`, memberOf(resource, "message")),
      ...(ids.indexOf(id) < index ? [duplicateError(`${at}.resourceID`, id)] : []),
    ];
  });
}
