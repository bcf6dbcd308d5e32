/** Quotes a text as Go does. */
export function goQuote(text: string): string {
  return JSON.stringify(text).replace(
    /\\u00([0-9a-f]{2})|\u007f/g,
    (_, code: string | undefined) => `\\x${code ?? "7f"}`,
  );
}
