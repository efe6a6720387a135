export function tryIt() {
  return null;
}
