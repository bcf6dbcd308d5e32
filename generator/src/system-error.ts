/** Descriptions of system calls, by name. */
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

/** Returns whether an error was raised by a system call, for example when reading a file. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException & { readonly code: string } {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).code === "string";
}

/** Returns the reason of a system error, for example `permission denied`. */
export function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  // Messages of Node.js have the form `EACCES: permission denied, open 'path'`.
  const [, stated, reason] = /^([A-Z][A-Z0-9]+): (.+?)(?:, \w+(?: '.*')?)?$/s.exec(message) ?? [];
  return reason !== undefined && stated === code ? reason : message;
}

/** Describes a system error, for example `cannot list the folder crds: permission denied`. */
export function describeSystemError(error: NodeJS.ErrnoException): string {
  const { syscall, path } = error;
  const call = syscall === undefined ? undefined : CALLS[syscall];
  return call === undefined || path === undefined ? error.message : `cannot ${call} ${path}: ${reasonOf(error)}`;
}

/** Returns whether a process with the pid exists. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
