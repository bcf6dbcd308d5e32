/** Replaces members of `value` by equal members of `before`, so that they are kept once. Both are JSON values. */
export function shareEqual(value: object, before: object): void {
  const [members, known] = [value as Members, before as Members];
  for (const name in members) {
    const [member, other] = [members[name], known[name]];
    if (typeof member === "string" ? member === other : isSameJson(member, other) && Object.hasOwn(known, name))
      members[name] = other;
  }
}

type Members = Record<string, unknown>;

/** Tells whether two JSON values are equal, and list their members in the same order. */
function isSameJson(value: unknown, other: unknown): boolean {
  if (value === other) return true;
  if (typeof value !== "object" || typeof other !== "object" || value === null || other === null) return false;
  if (Array.isArray(value) || Array.isArray(other)) return isSameArray(value, other);
  const names = Object.keys(other);
  let at = 0;
  for (const name in value)
    if (name !== names[at++] || !isSameJson((value as Members)[name], (other as Members)[name])) return false;
  return at === names.length;
}

function isSameArray(value: object, other: object): boolean {
  if (!Array.isArray(value) || !Array.isArray(other) || value.length !== other.length) return false;
  return value.every((item, at) => isSameJson(item, other[at]));
}
