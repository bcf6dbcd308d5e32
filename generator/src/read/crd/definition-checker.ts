// A file of its own in the bundle: it is loaded with the first definition.
export { checkDefinition, defaultDefinition } from "@gen-operator/schema/definitions";
