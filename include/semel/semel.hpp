// What most programs need. A store and a source come with a header of their own.
#pragma once

#include <semel/consumer.hpp>
