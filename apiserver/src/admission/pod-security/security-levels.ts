// What a Namespace demands of its Pods, by its labels. https://kubernetes.io/docs/concepts/security/pod-security-admission/
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, stringAt } from "../../json.js";

const LEVELS = ["privileged", "baseline", "restricted"] as const;
const PREFIX = "pod-security.kubernetes.io/";

/** How much a Pod must not do, as one minor version of Kubernetes says it. */
export interface SecurityLevel {
  readonly level: (typeof LEVELS)[number];
  /** `latest`, or such as `v1.30`. */
  readonly version: string;
}

/** What becomes of a Pod that does more. */
export type Mode = "enforce" | "audit" | "warn";

const FREE: SecurityLevel = { level: "privileged", version: "latest" };

/** The demands of a Namespace, and what is wrong with its labels. */
export interface Demands {
  readonly levels: Readonly<Record<Mode, SecurityLevel>>;
  readonly errors: FieldError[];
}

/** Reads what the labels of a Namespace demand. A level that is not readable demands nothing, unless it is enforced. */
export function demandsOf(labels: JsonObject | undefined): Demands {
  const [enforce, audit, warn] = (["enforce", "audit", "warn"] as const).map((mode) => read(labels, mode));
  const [enforced, warned] = [enforce?.level ?? FREE, warn?.level ?? FREE];
  // Who enforces a level warns of it, too.
  const warnsToo = warn?.isGiven === false && enforce?.isGiven === true && strictness(enforced) > strictness(warned);
  const version = stringAt(labels, `${PREFIX}warn-version`) === undefined ? enforced.version : warned.version;
  return {
    levels: {
      enforce: enforced,
      audit: audit?.level ?? FREE,
      warn: warnsToo ? { level: enforced.level, version } : warned,
    },
    errors: [enforce, audit, warn].flatMap((one) => one?.errors ?? []),
  };
}

/** Orders levels by how strict they are. */
export function strictness({ level }: SecurityLevel): number {
  return LEVELS.indexOf(level);
}

/** Writes a level with its version. */
export function shownLevel({ level, version }: SecurityLevel): string {
  return `${level}:${version}`;
}

interface ReadLevel {
  readonly level: SecurityLevel;
  readonly isGiven: boolean;
  readonly errors: FieldError[];
}

function read(labels: JsonObject | undefined, mode: Mode): ReadLevel {
  const [given, version] = [stringAt(labels, PREFIX + mode), stringAt(labels, `${PREFIX}${mode}-version`)];
  const level = LEVELS.find((known) => known === given);
  const isVersion = version === undefined || version === "latest" || /^v1\.(0|[1-9]\d*)$/.test(version);
  const wrong = (label: string, value: string, detail: string) =>
    invalidError(`metadata.labels[${label}]`, value, detail);
  return {
    level: { level: level ?? "privileged", version: isVersion && version !== undefined ? version : "latest" },
    isGiven: given !== undefined,
    errors: [
      ...(given === undefined || level !== undefined
        ? []
        : [wrong(PREFIX + mode, given, `must be one of ${LEVELS.join(", ")}`)]),
      ...(isVersion ? [] : [wrong(`${PREFIX}${mode}-version`, version, 'must be "latest" or "v1.x"')]),
    ],
  };
}
