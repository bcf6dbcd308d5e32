import { quote } from "./quote.js";

// Where Kubernetes keeps what it can decode.
const SCHEME = 'scheme "pkg/runtime/scheme.go:111"';

/** Says that no kind of this name is known in a version. */
export function unregisteredKind(kind: string, apiVersion: string): string {
  return `no kind ${quote(kind)} is registered for version ${quote(apiVersion)} in ${SCHEME}`;
}

/** Says that a Go type, such as `v1.Scale`, stands for no kind. */
export function unregisteredType(goType: string): string {
  return `no kind is registered for the type ${goType} in ${SCHEME}`;
}
