/** A selector of labels, as workloads have it. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** Tells whether labels match a selector; an empty one matches everything. */
export function selects(selector: LabelSelector | undefined, labels: Record<string, string> = {}): boolean {
  if (selector === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => holdsFor(expression, labels))
  );
}

/** Tells whether labels meet an expression of a selector. */
export function holdsFor(
  { key, operator, values = [] }: { key: string; operator: string; values?: string[] },
  labels: Record<string, string>,
): boolean {
  const value = labels[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    default:
      return value === undefined;
  }
}
