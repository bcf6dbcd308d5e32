/** What the system was asked to do, by the names of its calls. */
const CALLS: { readonly [call: string]: string } = {
  access: "read",
  link: "write",
  lstat: "read",
  mkdir: "create the folder",
  open: "open",
  read: "read",
  realpath: "read",
  rename: "write",
  rmdir: "delete the folder",
  scandir: "list the folder",
  stat: "read",
  unlink: "delete",
  write: "write",
};

/** Tells whether the system has refused something: to read a file, for example. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException & { readonly code: string } {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).code === "string";
}

/** Says why the system has refused something: `permission denied`. */
export function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  // Node.js writes `EACCES: permission denied, open 'path'`.
  const [, stated, reason] = /^([A-Z][A-Z0-9]+): (.+?)(?:, \w+(?: '.*')?)?$/s.exec(message) ?? [];
  return reason !== undefined && stated === code ? reason : message;
}

/** Says what the system has refused, and why: `cannot list the folder crds: permission denied`. */
export function describeSystemError(error: NodeJS.ErrnoException): string {
  const { syscall, path } = error;
  const call = syscall === undefined ? undefined : CALLS[syscall];
  return call === undefined || path === undefined ? error.message : `cannot ${call} ${path}: ${reasonOf(error)}`;
}

/** Tells whether there is a process of this number. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
