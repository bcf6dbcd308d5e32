/**
 * Tells whether every parser reads this name of a member right: after the name "\\" the JSON.parse of V8 13.6 (Node 24) takes a name that
 * is one other escaped character for it.
 */
export function isReadRight(name: string): boolean {
  return name.length !== 1 || JSON.stringify(name) === `"${name}"`;
}
