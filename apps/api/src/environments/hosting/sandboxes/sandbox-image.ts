/** Of images that this service built from tenants' folders. */
const OURS = /^localhost\/palestra\//i;
const NAME = /^[a-z0-9](?:[\w.:/@-]{0,253}\w)?$/i;

/** Whether a text is the name of an image that a tenant may run: none of the service itself. */
export const isImage = (name: string): boolean => NAME.test(name) && !OURS.test(name) && !/\.\.|\/\/|\/:/.test(name);
