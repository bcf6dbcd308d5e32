import type {
  ConfigMapArguments,
  ConfigMapInput,
} from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

export function desired({ primary }: ConfigMapArguments): ConfigMapInput {
  return { metadata: { name: primary.metadata.name }, data: { exposed: String(primary.spec.exposd) } };
}
