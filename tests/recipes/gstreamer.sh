# gst-launch-1.0: a thread for each queue.
programs='gst-launch-1.0 /usr/share/doc/gstreamer1.0-plugins-good'
packages='gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good'
licence=LGPL-2.1-or-later

run() {
  record gst-launch-1.0 -q videotestsrc num-buffers="$(part 500)" ! queue ! videoconvert ! queue ! \
    jpegenc ! queue ! avimux ! filesink location=output.avi
}
