/** What no variable or function of a module can be called: the words of ECMAScript 2024, 12.7.2, and what strict mode and modules add. */
export const reservedWords: ReadonlySet<string> = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
    "finally for function if implements import in instanceof interface let new null package private protected public return " +
    "static super switch this throw true try typeof var void while with yield"
  ).split(" "),
);

/** The folders of the generator beside those of the controllers. */
const FOLDERS: ReadonlySet<string> = new Set(["generated", "resources"]);

/** Names of devices, which Windows does not allow for files, whatever their extension. */
const DEVICES = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$/;

/** Tells whether no file can have a name, whatever its extension. */
export function isDevice(name: string): boolean {
  return DEVICES.test(name);
}

/** Tells whether no controller can have a name, which is also that of its folder. */
export function isReservedController(name: string): boolean {
  return FOLDERS.has(name) || isDevice(name);
}
