/** What the body of a request may be written in. */
export type BodyFormat = "json" | "yaml" | "protobuf";

/** Says that the bytes of a body have no meaning in their format, in words that resemble those of Kubernetes' parsers. */
export class BodySyntaxError extends Error {
  override readonly name = "BodySyntaxError";
  readonly format: BodyFormat;

  constructor(message: string, format: BodyFormat = "json") {
    super(message);
    this.format = format;
  }
}
