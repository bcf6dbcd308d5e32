/** Returns whether npm accepts the name for a new package: https://docs.npmjs.com/cli/configuring-npm/package-json#name */
export function isPackageName(text: string): boolean {
  return text.length <= 214 && /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(text);
}
