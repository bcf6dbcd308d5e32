/** Tells whether a parameter of a query is true: any text is but `false`, in any case, and `0` (apimachinery, Convert_Slice_string_To_bool). */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}
