import type { JsonObject } from "../json.js";

export function discoveryAnswer(
  _request: { path: string; accept: string },
  _types: unknown,
): { status: number; contentType: string; body: string } | undefined {
  return undefined;
}
export function tableOf(_type: unknown, _objects: JsonObject[], _options: object): JsonObject {
  throw new Error("tables are not served yet");
}
