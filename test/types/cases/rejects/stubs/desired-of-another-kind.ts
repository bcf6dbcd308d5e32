import type { ServiceInput } from "../../../../../fixtures/samples/webpage/src/generated/index.js";

export function desired(): ServiceInput {
  return { metadata: { name: "x" }, spec: { ports: [{ port: 80 }] } };
}
