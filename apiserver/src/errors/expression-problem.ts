export { checkText, problemLinesOf } from "@gen-operator/schema/definitions";
export type { CheckedText, Variables, VariableType } from "@gen-operator/schema/definitions";
