/** What `kubectl wait` looks at. */
interface Conditioned {
  readonly metadata: { readonly generation?: number | undefined };
  readonly status?:
    | {
        readonly conditions?:
          | readonly {
              readonly type: string;
              readonly status: string;
              readonly reason: string;
              readonly message: string;
              readonly observedGeneration?: number | undefined;
            }[]
          | undefined;
      }
    | undefined;
}

/** Tells whether `kubectl wait --for=condition=TYPE` would return: a condition that is older than the spec does not count (kubectl 1.36). */
export function isConditionTrue({ metadata, status }: Conditioned, type = "Ready"): boolean {
  const condition = status?.conditions?.find((each) => each.type === type);
  const isOld = (condition?.observedGeneration ?? Infinity) < (metadata.generation ?? 0);
  return condition?.status === "True" && !isOld;
}

/** Returns the conditions as text, `TYPE=STATUS REASON: MESSAGE`. */
export function conditionsOf({ status }: Conditioned): string[] {
  return (status?.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
  );
}
