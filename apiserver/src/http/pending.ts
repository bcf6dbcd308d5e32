export function discoveryAnswer(
  _request: { path: string; accept: string },
  _types: unknown,
): { status: number; contentType: string; body: string } | undefined {
  return undefined;
}
