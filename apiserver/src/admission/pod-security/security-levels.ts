// Pod Security levels that the labels of a Namespace set. https://kubernetes.io/docs/concepts/security/pod-security-admission/
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, stringAt } from "../../json.js";

const LEVELS = ["privileged", "baseline", "restricted"] as const;
const PREFIX = "pod-security.kubernetes.io/";

/** A Pod Security Standard, as defined by one minor version of Kubernetes. */
export interface SecurityLevel {
  readonly level: (typeof LEVELS)[number];
  /** `latest`, or a minor version such as `v1.30`. */
  readonly version: string;
}

/** The consequence of a violation. */
export type Mode = "enforce" | "audit" | "warn";

const FREE: SecurityLevel = { level: "privileged", version: "latest" };

/** The levels of a Namespace, and the errors in its labels. */
export interface Demands {
  readonly levels: Readonly<Record<Mode, SecurityLevel>>;
  readonly errors: FieldError[];
}

/** Parses the Pod Security labels of a Namespace. An invalid level counts as privileged and is reported in `errors`. */
export function demandsOf(labels: JsonObject | undefined): Demands {
  const [enforce, audit, warn] = (["enforce", "audit", "warn"] as const).map((mode) => read(labels, mode));
  const [enforced, warned] = [enforce?.level ?? FREE, warn?.level ?? FREE];
  // An enforced level also warns, unless the Namespace sets a warn level.
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

/** Returns the rank of a level, for comparisons. */
export function strictness({ level }: SecurityLevel): number {
  return LEVELS.indexOf(level);
}

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
