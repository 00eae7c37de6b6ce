# bridge: sessions whose connection goes outwards, to another broker. Loaded if there is a bridge.
