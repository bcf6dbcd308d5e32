/**
 * Returns whether all JSON parsers read a member name correctly. After a member named "\\", JSON.parse of V8 13.6 (Node.js 24) reads a name that
 * consists of one other escaped character as "\\".
 */
export function isReadRight(name: string): boolean {
  return name.length !== 1 || JSON.stringify(name) === `"${name}"`;
}
