// What GET /debug/state tells: who waits for what. It never has the contents of objects; messages of errors about Secrets come without values.
import type { ObservedOperator } from "../health.js";

/** Reads the state of an operator. */
export function stateOf(operator: ObservedOperator) {
  const now = performance.now();
  const { status, controllers, leadership } = operator.health();
  const shown = operator.controllers().map((each) => {
    const { name } = each.definition;
    return [name, { ...controllers[name], ...each.activity(), ...each.details() }] as const;
  });
  return {
    ...{ time: new Date().toISOString(), status },
    ...(leadership !== undefined && { leadership }),
    suspects: operator.suspects?.() ?? [],
    controllers: Object.fromEntries(shown),
    // The age is absent before the watch has brought anything.
    watches: operator.informers().map(({ receivedAt, ...watch }) => ({
      ...watch,
      ...(receivedAt !== undefined && { lastEventAgeMs: Math.max(0, Math.round(now - receivedAt)) }),
    })),
  };
}
