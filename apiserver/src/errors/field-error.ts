export {
  duplicateError,
  fieldErrorPath,
  fieldErrorText,
  forbiddenError,
  formatValue,
  internalError,
  invalidError,
  notFoundError,
  notSupportedError,
  requiredError,
  textNotSupportedError,
  tooLongError,
  tooManyError,
  typeInvalidError,
  WHOLE,
  withoutValue,
} from "@gen-operator/schema/definitions";
export type { FieldError, FieldErrorReason } from "@gen-operator/schema/definitions";
