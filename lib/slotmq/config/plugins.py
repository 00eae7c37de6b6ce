# plugins.py - the plugins of mosquitto 2.1 that are built in here: mosquitto_password_file and
# mosquitto_acl_file, whose option is the key of that name. All other plugins are refused. Loaded
# on demand by config/other_keys.py, for a line about plugins; allocates. Reader.plugins has a
# Plugin for each, the last one being that which options are for.


class Plugin:
    """One that a line has named. key: the key that does its work, or "": it is refused."""

    def __init__(self, reader, line, name, path):
        self.line = line
        self.at = reader.at
        self.name = name  # of plugin_load; None: the plugin is for all listeners
        base = path.strip().replace("\\", "/").split("/")[-1].split(".")[0]
        is_ours = base in ("mosquitto_password_file", "mosquitto_acl_file")
        self.key = base[10:] if is_ours else ""
        self.sections = []  # of the listeners with its plugin_use
        self.path = None  # the value of its option


def take(reader, line, value, text):
    """A line about plugins: its key and its value. text: which plugins are served."""
    plugins = reader.plugins = reader.plugins or []
    if line == "plugin_use":
        plugin = _use(reader, value)
        plugins.remove(plugin)
        plugins.append(plugin)
        return
    if "_opt_" not in line:
        plugins.append(_load(reader, line, value))
    elif not plugins:
        raise ValueError("a plugin above it")
    elif plugins[-1].key:
        _option(reader, plugins[-1], line, value)
    if not plugins[-1].key:
        what = reader.place(reader.at), line, text
        reader.report(reader.at, "%s: %s: not served: %s" % what)


def _load(reader, line, value):
    words = value.split(None, 1)
    if line != "plugin_load":
        return Plugin(reader, line, None, reader.text(None, value))
    if len(words) != 2:
        raise ValueError("a name and a path")
    return Plugin(reader, line, words[0], words[1])


def _use(reader, name):
    if reader._section is reader.sections[0]:
        raise ValueError("a listener above it")
    for plugin in reader.plugins:
        if name and plugin.name == name:
            plugin.sections.append(reader._section)
            return plugin
    raise ValueError("the name of a plugin_load above it")


def _option(reader, plugin, line, value):
    key = plugin.key
    if line[line.find("_opt_") + 5 :] != key:
        raise ValueError("plugin_opt_" + key)
    plugin.path = value
    if plugin.name and _is_scoped(reader):
        reader.lines[key] = reader.at
        return  # check() gives it to the listeners that use the plugin
    if getattr(reader.settings, key, None) not in (None, value):
        raise ValueError("the same file as above, since there is one %s" % key)
    reader.set(key, value)


def _is_scoped(reader):
    return getattr(reader.settings, "per_listener_settings", False)


def check(reader):
    """Has each plugin its file, and is it used for all listeners?"""
    listeners = [each for each in reader.sections if each[0] or each[1]]
    for plugin in reader.plugins:
        if not plugin.key:
            continue
        if not plugin.path:
            reader.fail(plugin.at, plugin.line, "plugin_opt_%s PATH below it" % plugin.key)
        if plugin.sections and _is_scoped(reader):
            for section in plugin.sections:
                section[4][plugin.key] = plugin.path
        elif plugin.name and any([each not in plugin.sections for each in listeners]):
            what = "plugin_use below each listener, since %s is that of all"
            reader.fail(plugin.at, plugin.line, what % plugin.key)
