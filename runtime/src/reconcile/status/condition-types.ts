/** The types of the conditions that the runtime keeps for a controller. */
export interface ConditionTypes {
  readonly ready: string;
  readonly paused: string;
  /** `DeploymentReady` of the dependent "deployment". */
  of(dependent: string): string;
  /** All of them. */
  readonly all: ReadonlySet<string>;
}

/** Returns the types of the conditions for a workflow of these dependents; all of them begin with `prefix`. */
export function conditionTypesOf(dependents: readonly string[], prefix = ""): ConditionTypes {
  const of = (dependent: string) => `${prefix}${dependent.charAt(0).toUpperCase()}${dependent.slice(1)}Ready`;
  const [ready, paused] = [`${prefix}Ready`, `${prefix}Paused`];
  return { ready, paused, of, all: new Set([ready, paused, ...dependents.map(of)]) };
}
