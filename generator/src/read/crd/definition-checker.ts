// A separate file of the bundle, which is loaded with the first definition.
export { checkDefinition, defaultDefinition } from "@gen-operator/schema/definitions";
