/** What objects are written in, in the order in which a real server lists them. */
export const MEDIA_TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
